"""What the book's pages import: tables that are measured, pictures as inline SVG, and the live figures."""
