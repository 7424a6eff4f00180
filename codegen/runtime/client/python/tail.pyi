
def connect(url: str | None = ..., token: str | None = ...) -> None:
    """Says where the gateway is; without, SALLYPORT_URL (or http://127.0.0.1:8080) and SALLYPORT_TOKEN count."""
