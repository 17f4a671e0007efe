#!/usr/bin/env node
// The `tokenmill` command: finds a fitting Node, then cli/main does the rest.
import { launch, MAIN } from './launch.mjs'

launch(MAIN, process.argv.slice(2))
