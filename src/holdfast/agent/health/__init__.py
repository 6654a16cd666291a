"""Health checks: probes, and the verdicts that they lead to."""
