"""Attention and Transformers in plain NumPy, and the classroom around them.

The maths (NumPy only):

- `ops`: softmax, cross-entropy, linear, norms, activations, embedding, each with its derivative
- `attention`: masks, scaled dot-product and multi-head attention
- `scores`: the four scores of recurrent decoders, and a look back with each
- `positions`: sinusoidal, rotary and linear-bias positions; the shift matrix
- `efficient`: sparse masks, linear attention, online softmax; `costs`: what each layer costs
- `layers`: trainable layers, thin around the functions
- `recurrent`: one step of an RNN, GRU and LSTM, and through time
- `models`: Seq2Seq, Transformer, Encoder and GPT: loss and gradients, attention maps, generation
- `training`: SGD and Adam, schedules, `fit` with a progress bar; `checkpoints`: parameters saved and loaded
- `tasks`: what the models are trained on; vocabularies, padding, batches
- `gradcheck`: derivatives against finite differences
- `pretrained`: a published chatbot in our own model; `python course.py real` fetches it

The classroom (uses the maths, never the reverse):

- `plots`: the house style; arrays in, pictures with alternative text out
- `drawings`: boxes, arrows, threads as thick as weights, matrices with numbers in their cells
- `numbers`: numbers as people write them
- `live`: live figures, a draw-once picture under sliders
- `lessons`: a package for each notebook: its live figures and measurements, exercises and questions
- `exercises`: what marks exercises, and names the mistake
- `quiz`: checkpoint questions with feedback for every option
- `progress`: which exercises are solved, and what comes next

Notebooks write `from lesson_utils import attention, plots`. Importing has no side effects.
"""
