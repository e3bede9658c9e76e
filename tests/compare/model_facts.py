"""What a model's file says of the memory that its keys and values take."""
import functools

import gguf


@functools.cache
def bytes_per_token(path):
    """Of keys and values as f16 in all layers."""
    reader = gguf.GGUFReader(path)

    def fact(name, otherwise=None):
        field = reader.fields.get(f"{family}.{name}")
        return otherwise if field is None else field.contents()
    family = reader.fields["general.architecture"].contents()
    heads = fact("attention.head_count")
    size = fact("attention.key_length", fact("embedding_length") // heads)
    return 2 * 2 * fact("block_count") * fact("attention.head_count_kv", heads) * size


def cache_bytes(path, context):
    """Keys and values of a context, as if no layer had a window."""
    return context * bytes_per_token(str(path))
