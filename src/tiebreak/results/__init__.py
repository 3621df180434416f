"""What runs leave behind, and where it is kept."""
