"""From a lab's source and the reference to notebooks, releases and what is published."""
