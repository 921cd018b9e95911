"""What others need to install and start a server: a registry's entry, a bundle, a client's configuration."""
