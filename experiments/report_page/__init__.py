"""The page of `spac report`: one HTML file that needs no network and runs no script."""
