"""Operations: more than one operator, and what becomes of it when one of them ends."""
