"""Operations: several operators, and what happens when one of them ends."""
