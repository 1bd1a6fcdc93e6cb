"""Built-in stand-ins for data that cannot be had: handwriting and scenes, drawn."""
