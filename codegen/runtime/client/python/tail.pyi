
def connect(url: str | None = ..., token: str | None = ...) -> None:
    """Sets the gateway. Defaults: SALLYPORT_URL (or http://127.0.0.1:8080) and SALLYPORT_TOKEN."""
