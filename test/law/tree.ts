// Reads the source tree for these tests: every file, its text, and the files and packages that it imports. A script
// that is forked by its path counts as an import.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export interface SourceFile {
  /** Relative to the root of the project, as is every path here. */
  path: string
  text: string
  /** The imports as they are written: `./pool.ts`, `pg`. */
  imports: string[]
}

const IMPORT = /(?:^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*|^\s*import\s*|\b(?:import|require)\(\s*)['"]([^'"]+)['"]/gm
/** A script that the product forks has no extension there (src/script.ts). */
const FORK = /\bscriptBeside\(import\.meta\.url, '([^']+)'\)/g
const FORK_OF_TEST = /\bnew URL\(\s*['"]([^'"]+\.ts)['"]\s*,\s*import\.meta\.url\)/g

export function importsOf(text: string): string[] {
  const forks = [
    ...[...text.matchAll(FORK)].map(match => `${match[1]}.ts`),
    ...[...text.matchAll(FORK_OF_TEST)].map(match => match[1] ?? ''),
  ]
  return [
    ...[...text.matchAll(IMPORT)].map(match => match[1] ?? ''),
    ...forks.map(path => (path.startsWith('.') ? path : `./${path}`)),
  ]
}

export function readTree(folder: string): SourceFile[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => entry.isFile() && !/\/(out|node_modules|dist)(\/|$)/.test(entry.parentPath))
    .map(entry => relative(root, join(entry.parentPath, entry.name)))
    .map(path => {
      const text = readFileSync(join(root, path), 'utf8')
      return { path, text, imports: path.endsWith('.ts') ? importsOf(text) : [] }
    })
}

/** The project files that a file imports. */
export function targetsOf({ path, imports }: SourceFile): string[] {
  return imports
    .filter(name => name.startsWith('.'))
    .map(name => relative(root, resolve(root, dirname(path), name)))
    .filter(target => existsSync(join(root, target)))
}

export const tree = ['cli', 'clients', 'src', 'producers', 'workers', 'bin', 'test', 'bench'].flatMap(readTree)
export const code = tree.filter(file => file.path.endsWith('.ts'))
export const product = code.filter(file => /^(cli|src|producers|workers)\//.test(file.path))

export const isWithin = (path: string, room: string) => path === room || path.startsWith(`${room}/`)

export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

/** Expects that `broken` finds nothing wrong with any file; shows all findings at once. */
export function expectNone(files: readonly SourceFile[], broken: (file: SourceFile) => readonly string[]): void {
  expect(files.flatMap(file => broken(file).map(what => `${file.path}: ${what}`))).toEqual([])
}
