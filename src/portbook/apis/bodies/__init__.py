"""Request bodies that are not JSON: forms, files, text, binary data."""
