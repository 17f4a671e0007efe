#!/usr/bin/env node
// The `tokenmill` command: finds a fitting Node, then cli/main.ts does the rest.
import { launch } from './launch.mjs'

launch('cli/main.ts', process.argv.slice(2))
