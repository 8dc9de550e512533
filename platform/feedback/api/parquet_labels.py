"""Labels in a Parquet file. A small file can unpack to any size, so nothing is unpacked before its size is known.

Sizes in the file's footer are the sender's words. What pages really unpack to is in their own headers, which the reader
trusts, so these are checked too (`feedback.domain.parquet_pages`).
"""

import io
from collections.abc import Iterator
from typing import Any

from common.errors import InvalidInput, TooLarge, Unavailable
from feedback.domain.labels import MOST_ROWS, MOST_VALUES, check_columns
from feedback.domain.parquet_pages import check_pages

MAX_UNPACKED_BYTES = 128 << 20
_BATCH = 2_000


def parquet_rows(content: bytes) -> Iterator[object]:
    """Yield the rows of a file.

    Raises:
        InvalidInput: it is no Parquet file, or its columns are not those of labels.
        TooLarge: it has too many rows, or unpacks to more than 128 MiB.
        Unavailable: the library that reads it is not installed here.
    """
    try:
        import pyarrow as arrow  # noqa: PLC0415 - takes 40 MB, and only these bodies need it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(
            "this control plane has no pyarrow, which reads Parquet; install it there, or send CSV or lines of JSON"
        ) from error
    try:
        file = parquet.ParquetFile(io.BytesIO(content), pre_buffer=False, memory_map=False)
        _check(file.metadata, content)
        check_columns(file.schema_arrow.names, "Parquet file")
        _check_types(arrow, file.schema_arrow)
        # As a dictionary, a text that many rows repeat is there once.
        texts = [name for name in file.schema_arrow.names if arrow.types.is_string(file.schema_arrow.field(name).type)]
        file = parquet.ParquetFile(io.BytesIO(content), pre_buffer=False, memory_map=False, read_dictionary=texts)
        for batch in file.iter_batches(_BATCH, use_threads=False):
            yield from batch.to_pylist()
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InvalidInput(f"the body is no Parquet file that can be read: {reason}", field="labels") from error


def _check(metadata: Any, content: bytes) -> None:
    if metadata.num_rows > MOST_ROWS:
        raise TooLarge(f"the Parquet file has {metadata.num_rows:,} rows; at most {MOST_ROWS:,} are taken at once")
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(min(metadata.num_row_groups, MOST_ROWS))
        for column in range(metadata.num_columns)
    ]
    values = max((chunk.num_values for chunk in chunks), default=0)
    if values > MOST_ROWS * MOST_VALUES:
        raise TooLarge(f"the Parquet file has a column of {values:,} values; a label has at most {MOST_VALUES}")
    unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
    for chunk in chunks:
        begin = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            begin = min(begin, chunk.dictionary_page_offset)
        end = begin + chunk.total_compressed_size
        if not 0 <= begin <= end <= len(content):
            raise InvalidInput("the Parquet file has a column that is not inside it", field="labels")
        unpacked = max(unpacked, 0) + check_pages(content[begin:end], most_values=MOST_ROWS * MOST_VALUES)
        if unpacked > 2 * MAX_UNPACKED_BYTES:
            break
    if unpacked > 2 * MAX_UNPACKED_BYTES:  # the footer's sizes and the pages' own
        raise TooLarge(
            f"the Parquet file unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB; send labels alone, in several files"
        )


def _check_types(arrow: Any, schema: Any) -> None:
    kinds = arrow.types
    for each in schema:
        kind = each.type
        is_list = each.name == "value" and (kinds.is_list(kind) or kinds.is_large_list(kind))
        plain = kind.value_type if is_list else kind
        is_text = kinds.is_string(plain) or kinds.is_large_string(plain)
        is_number = kinds.is_integer(plain) or kinds.is_floating(plain)
        is_time = kinds.is_timestamp(plain)
        if not (is_text or (each.name == "value" and is_number) or (each.name == "given_at" and is_time)):
            expected = {
                "request_id": "texts",
                "value": "numbers, texts or lists of them",
                "given_at": "timestamps or texts",
            }[each.name]
            raise InvalidInput(
                f"the column {each.name} of the Parquet file has the type {str(plain)[:60]}; expected {expected}",
                field="labels",
            )
