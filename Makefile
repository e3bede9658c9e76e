# The front door. Each target does all of its own set-up; the work is in small scripts in tools/.
# ARGS is passed on: make serve ARGS="--port 11434 --model my.gguf"
ARGS ?=

.PHONY: help build serve check test prove performance clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build:  ## the program, at build/release/cadans
	@tools/build

serve:  ## fetch the default model, start the server, print its address
	@tools/serve $(ARGS)

check:  ## the quick path: unit tests and fast integration tests, under five minutes
	@tools/test check $(ARGS)

test:  ## every test; the last line is "N passed, M failed"
	@tools/test test $(ARGS)

prove:  ## the long proofs, resumable; evidence goes to docs/evidence/
	@tools/prove $(ARGS)

performance:  ## measure this machine and write docs/performance.md
	@tools/performance $(ARGS)

clean:  ## remove what was built (installed tools and fetched models stay)
	@rm -rf build
