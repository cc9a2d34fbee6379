"""Operations: more than one operator, and what happens when one of them ends."""
