// `npm run build:client`: emits the package `tokenmill-client` into clients/node/dist, for `npm pack` there, and writes what a
// program sees of it into clients/node/surface.txt.
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { buildClient, surfaceIn } from './build/client.ts'

const PACKAGE = fileURLToPath(new URL('../clients/node', import.meta.url))
await buildClient()
await writeFile(`${PACKAGE}/surface.txt`, surfaceIn(PACKAGE))
