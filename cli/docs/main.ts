// `npm run docs`: writes the documents that are generated from the code, so that they can't contradict it. Documents
// written by hand (docs/upstream.md and others) stay as they are.
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { processTerminal, say } from '../terminal.ts'
import { asyncApi } from './asyncapi.ts'
import { securityPage } from './owner.ts'
import { reportsPage } from './reports.ts'
import { resultsPage } from './results.ts'
import { schemas } from './schema.ts'

/** The path of each document under docs/, and its text. */
export function generated(): Map<string, string> {
  const files = new Map<string, string>()
  for (const [name, schema] of Object.entries(schemas())) files.set(`schema/${name}.json`, json(schema))
  files.set('asyncapi.json', json(asyncApi()))
  files.set('results.md', resultsPage())
  files.set('reports.md', reportsPage())
  files.set('security.md', securityPage())
  return files
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** Writes all documents under `docs` and returns how many. */
async function writeDocs(docs: string): Promise<number> {
  const files = generated()
  for (const [path, text] of files) {
    await mkdir(dirname(join(docs, path)), { recursive: true })
    await writeFile(join(docs, path), text)
  }
  return files.size
}

if (import.meta.main) {
  const docs = fileURLToPath(new URL('../../docs', import.meta.url))
  say(processTerminal(), `${await writeDocs(docs)} documents written`)
}
