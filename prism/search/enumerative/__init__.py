"""The paper's own search: operator by operator, with symbolic maps. The oracle of the default."""
