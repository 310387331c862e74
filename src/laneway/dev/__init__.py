"""For development: embedded database servers, chaos runs and the demo."""
