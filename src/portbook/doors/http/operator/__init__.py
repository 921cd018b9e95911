"""What an operator asks over HTTP: recorded calls, figures, proof. All of it needs the operator key."""
