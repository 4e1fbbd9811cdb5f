"""The program: command line, nightly run, server."""
