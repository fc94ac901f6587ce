# %% [markdown]
# # A card, cell by cell
#
# Open this file as a notebook (VS Code, Jupytext), or read it. Run the cells in any rhythm: the
# lease lives in a thread of its own, and berthd is answered while you think.

# %% Take the card
import berth

lease = berth.lease(needs_mib=8000, name="notebook", wait_s=None).take()
print(lease.id, [card.card for card in lease.cards])

# %% Load something onto it
model = bytearray(1 << 20)  # your model: torch.load(...).to("cuda")

# %% Between experiments: does somebody wait for the card?
print("wanted", lease.wanted_why if lease.wanted else "by nobody")

# %% Then let them have it. This cell returns when the card is back.
if lease.wanted:
    del model
    lease.give_way()
    model = bytearray(1 << 20)
print(lease.id)

# %% The last cell: give the card back. (Stopping the kernel does it too.)
del model
lease.release()
