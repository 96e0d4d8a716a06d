"""What labs and tests train: small models in plain torch, which know nothing of the techniques that are tried on them.

| file | idea | paper |
|---|---|---|
| chain | an MLP: layers in a row | - |
| gpt | a transformer that continues text, byte by byte | Radford and others 2019 |
"""
