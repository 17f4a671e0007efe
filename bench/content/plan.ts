// What one process of the bench measures of a mix. Its files are written once, so all runs and checkouts read the same bytes.
import { createWriteStream, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { EngineName } from '../place.ts'
import type { ContentFile, Mix } from './mix.ts'
import { linesOf, MIXES } from './mixes.ts'

export interface Plan {
  /** The name of the mix, or of the file of `--content-file`. */
  name: string
  engine: EngineName
  /** Rows of the base, cards of (d). */
  rows: number
  base: string
  file: string
  /** Options of `migrate` for the file, among them its profile. */
  args: string[]
  /** A file that is migrated before, without the options that say how the mix is asked. */
  before?: { file: string; args: string[] } | undefined
}

const BASE = 'base'

/** Writes the files of mixes into a folder, each once. */
export function openPlans(dir: string, rows: number) {
  const written = new Map<string, Promise<string>>()
  const once = (name: string, write: (path: string) => Promise<void>) => {
    const path = join(dir, name)
    const found = written.get(name) ?? write(path).then(() => path)
    written.set(name, found)
    return found
  }
  const lines = (name: string, file: ContentFile, every = 1) =>
    once(`${name}.${file.extension}${file.isPacked ? '.gz' : ''}`, path => {
      const pieces = inPieces(linesOf(file, rows, every))
      const sink = createWriteStream(path, { mode: 0o600 })
      return file.isPacked ? pipeline(pieces, createGzip(), sink) : pipeline(pieces, sink)
    })
  const base = () => lines(BASE, (MIXES[BASE] as Mix).file)
  return {
    async ofMix(name: string, engine: EngineName): Promise<Plan> {
      const { file, profile, args = [], before } = MIXES[name] as Mix
      const json = profile && (await once(`${profile.name}.json`, path => writeFile(path, JSON.stringify(profile))))
      const from = json === undefined ? [] : ['--from', json]
      return {
        name,
        engine,
        rows,
        base: await base(),
        file: await lines(name, file),
        args: [...from, ...args],
        before: before && { file: await lines(`${name}-before`, before.file, before.every), args: from },
      }
    },
    /** `profile`: a name, a file, or `none` for our own columns. */
    async ofFile({ file, profile }: { file: string; profile: string }, engine: EngineName): Promise<Plan> {
      const args = profile === 'none' ? [] : ['--from', existsSync(profile) ? resolve(profile) : profile]
      return { name: basename(file), engine, rows, base: await base(), file: resolve(file), args }
    },
  }
}

const LINES_A_PIECE = 500

function inPieces(lines: Iterable<string>): Readable {
  function* pieces() {
    let piece: string[] = []
    for (const line of lines) {
      piece.push(line)
      if (piece.length < LINES_A_PIECE) continue
      yield piece.join('')
      piece = []
    }
    yield piece.join('')
  }
  return Readable.from(pieces())
}
