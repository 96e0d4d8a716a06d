"""What labs and tests train on: text and images that every Python brings along, or a folder of your own.

| file | idea | source |
|---|---|---|
| text | bytes to continue: the standard library's own sources | Python |
| digits | images to name: 1,797 handwritten digits | scikit-learn, UCI |
| sharding | each sample to one rank, none twice; metrics as sums | - |
"""
