"""From files to meaning: text, YAML trees with positions, public CSV files, and what every name stands for."""
