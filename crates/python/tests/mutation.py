"""Changes of one leaf of a value: of a word, a number, a key."""

import copy
import os
import re

# How many changes a test makes; more by FASTPATH_MUTATIONS.
COUNT = int(os.environ.get("FASTPATH_MUTATIONS", "300"))


def changed_word(random, word):
    """Return another word: another number in it, a letter more, or two letters swapped."""
    numbers = list(re.finditer(r"\d+", word))
    if numbers and random.random() < 0.6:
        found = random.choice(numbers)
        number = str(int(found.group()) + random.choice([1, 2, 7]))
        return word[: found.start()] + number + word[found.end():]
    at = random.randrange(len(word) + 1)
    if random.random() < 0.5 or len(word) < 2:
        return word[:at] + "q" + word[at:]
    at = min(at, len(word) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2:]
    return swapped if swapped != word else word + "q"


def changed_value(random, value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + random.choice([1, 3])
    return changed_word(random, value)


def leaves(value, path=()):
    """Return the paths of leaves and of keys of a value."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield (*path, ("key", key))
            yield from leaves(entry, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from leaves(entry, (*path, index))
    else:
        yield path


def mutated(random, value):
    """Return a value with one leaf changed, removed or misspelled, and what was done."""
    path = random.choice(list(leaves(value)))
    value = copy.deepcopy(value)
    at = value
    for step in path[:-1]:
        at = at[step]
    last = path[-1]
    if isinstance(last, tuple):
        key = last[1]
        if random.random() < 0.5:
            del at[key]
            return value, f"{path[:-1]}: {key} removed"
        new = changed_word(random, key)
        entries = {new if name == key else name: entry for name, entry in at.items()}
        at.clear()
        at.update(entries)
        return value, f"{path[:-1]}: {key} is {new}"
    before = at[last]
    at[last] = changed_value(random, before)
    return value, f"{path}: {before!r} is {at[last]!r}"
