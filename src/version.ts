// The release of the program that runs, as package.json names it. It says nothing of the store's schema.
import { readFileSync } from 'node:fs'

export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const version = typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : ''
  return String(version)
}
