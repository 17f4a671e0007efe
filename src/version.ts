// What package.json says of the tokenmill that runs: its version, and the packages that only features need. The version
// of the store's schema is something else.
import { readFileSync } from 'node:fs'

interface Manifest {
  version: string
  /** Name and exact version. */
  dependencies: Partial<Record<string, string>>
  optionalDependencies: Partial<Record<string, string>>
  /** Those that the installed package leaves to its user; a checkout has none. */
  peerDependencies?: Partial<Record<string, string>>
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Manifest
}

export function readVersion(): string {
  return readManifest().version
}
