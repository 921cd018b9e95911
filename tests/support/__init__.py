"""What tests share: ways to start Portbook, clients, peers and samples."""
