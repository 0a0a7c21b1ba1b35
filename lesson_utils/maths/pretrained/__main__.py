"""`python -m lesson_utils.maths.pretrained`: fetch the model, if it is not there yet."""

from lesson_utils.maths import pretrained

if __name__ == "__main__":
    if pretrained.find() is None:
        print("Fetching SmolLM2-135M-Instruct (98 MB) ...", flush=True)
        pretrained.install()
    print(f"The model is in {pretrained.find()}")
