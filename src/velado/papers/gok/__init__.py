"""GOK-Privacy: the source's tables, and its algorithm as its reference code has it."""
