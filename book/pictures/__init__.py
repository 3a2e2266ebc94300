"""What the book's pages import to draw: figures as inline SVG, and the live number line."""
