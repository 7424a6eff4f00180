def urgent(tickets: list[dict], severity: str, hours: int) -> list[dict]:
    """Tickets of one severity that wait for too long, the oldest first."""
    late = [t for t in tickets if t["severity"] == severity and t["hours_open"] > hours]
    return sorted(late, key=lambda t: -t["hours_open"])
