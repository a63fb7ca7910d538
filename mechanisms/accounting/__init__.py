"""The arithmetic of prices: conversions between currencies, laws of privacy loss, and their exact composition."""
