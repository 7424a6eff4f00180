

# The rest is only for programs outside of a sandbox.
__all__.append("connect")
os.environ.setdefault("SALLYPORT_WORKSPACE", os.getcwd())  # where save and load keep their files


def connect(url: str | None = None, token: str | None = None) -> None:
    """Sets the gateway. Defaults: SALLYPORT_URL (or http://127.0.0.1:8080) and SALLYPORT_TOKEN."""
    global _bridge
    from . import client

    _bridge = client.Gateway(url, token)
