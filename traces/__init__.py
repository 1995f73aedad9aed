"""Routing traces and run logs: file formats, checks, replay, statistics. No simulator, no torch."""
