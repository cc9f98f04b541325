"""People with several rows of a table that is drawn in parts: what the whole table decides, and those of one part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints
from duckanon._core.common.people import NOBODY
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.column_split import Reading, number_parts
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_columns import Counted, Scheme, applied
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.audited_size import without_some
from duckanon._methods.synthesize.people_with_rows import Drawing, sequence_draw
from duckanon._methods.synthesize.sequence_columns import SequenceColumns, WholeColumn, order_and_dates
from duckanon._methods.synthesize.sequence_order import Sequences, order_values
from duckanon._methods.synthesize.table_groups import with_digits
from duckanon._methods.synthesize.table_parts import with_usual


class SequenceSynthesis(NamedTuple):
    """What every part of a table of people with several rows is drawn with.

    Attributes:
        whole: The columns of the table in small, by name.
        schemes: How each of them is split.
        personal: The columns that are the same in all rows of a person.
        ordering: The column that orders the rows of a person, and the dates that decide where it does not.
        reading, drawing: How columns are read, and how people are drawn.
    """

    whole: Mapping[str, WholeColumn]
    schemes: Sequence[Scheme]
    personal: Sequence[str]
    ordering: Sequence[str]
    reading: Reading
    drawing: Drawing

    @classmethod
    def of(
        cls,
        counted: Sequence[Counted],
        columns: Sequence[tuple[ColumnParts, Ints | None]],
        schema: pa.Schema,
        personal: Sequence[str],
        ordering: Sequence[str],
        reading: Reading,
        drawing: Drawing,
    ) -> SequenceSynthesis:
        """Decide over the whole table which numbers may be released.

        Args:
            counted, columns: Its columns in small, and as rows without an order split them.
            schema: Its types.
            personal, ordering, reading, drawing: As above.
        """
        order, dates = order_and_dates(schema, personal, next(iter(ordering), None))
        whole = {}
        for one, (column, people) in zip(counted, columns, strict=True):
            if one.name in (order, *dates):  # dates that many share are no special ones
                column = with_digits(number_parts(one.name, cleaned(one.array), people, reading, np.zeros(0)))
            numbers = None
            if column.regular is not None:
                numbers = with_usual(SafeNumbers.of(column, people, reading.k, reading.chance), column, people)
            whole[one.name] = WholeColumn(column, people, numbers)
        return cls(whole, [Scheme.of(one.column) for one in whole.values()], personal, ordering, reading, drawing)

    def drawn(
        self, part: pa.Table, people: Ints, count: int, random: np.random.Generator, tell: Tell = silent
    ) -> tuple[pa.Table, Ints]:
        """Draw so many people from those of a part, with all their rows; return the rows, and whose each is."""
        known = np.flatnonzero(people != NOBODY)
        table, people = part.take(pa.array(known)).select(list(self.whole)), people[known]
        sequences = Sequences.of(people, order_values(table, self.ordering), self.reading.k, random)
        split = {one.name: one for one in applied(self.schemes, table)}
        order = next(iter(self.ordering), None)
        columns = SequenceColumns.of(table, people, self.reading, sequences, self.personal, order, split, self.whole)
        used = without_some(np.arange(len(sequences.lengths)), None, self.drawing.keep_out, random)
        new = sequence_draw(columns, self.drawing, random).draw(0, used, count, tell)
        return pa.table(new.arrays, schema=table.schema), new.person
