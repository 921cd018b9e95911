"""The HTTP/1.1 server: bytes of connections in, requests to the routes, replies out."""
