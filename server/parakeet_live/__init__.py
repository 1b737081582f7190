"""Live speech to text over a WebSocket: streaming Parakeet-EOU sessions behind FastAPI."""
