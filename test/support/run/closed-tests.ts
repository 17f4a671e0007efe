// Finds the tests that reach no server, browser or process by anything that they import, for `npm run check`. It follows
// imports within test/ only: the product's code opens a server when it is called, and what calls it lies there.
import { dirname, join } from 'node:path'

/** What opens a server or a browser, or starts a process. */
const OPENS = new Set(['node:child_process', 'playwright-core', 'pg', 'ioredis'])

const IMPORT =
  /^\s*(?:import|export)\b(?!\s+type\b)[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bawait import\(\s*['"](\.[^'"]+)['"]/gm

/** `texts`: path → content of each file under test/. Returns the paths of the tests, sorted. */
export function closedTests(texts: ReadonlyMap<string, string>): string[] {
  const imports = new Map([...texts].map(([path, text]) => [path, importsOf(text)]))
  const opens = (path: string) => {
    const reached = new Set([path])
    for (const at of reached)
      for (const name of imports.get(at) ?? []) {
        if (OPENS.has(name)) return true
        const target = join(dirname(at), name)
        if (name.startsWith('.') && imports.has(target)) reached.add(target)
      }
    return false
  }
  return [...texts.keys()].filter(path => path.endsWith('.test.ts') && !opens(path)).sort()
}

function importsOf(text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, from, bare, loaded]) => from ?? bare ?? loaded ?? '')
}
