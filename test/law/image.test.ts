// The content of the image, read from the Dockerfile and .dockerignore: every file that the command can reach, and no
// test. No Docker is needed.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importsOf, isWithin, root } from './tree.ts'

const ENTRY = 'bin/tokenmill.mjs'
const URL_OF_FILE = /\bnew URL\(\s*['"]([^'"]+)['"]\s*,\s*import\.meta\.url\)/g
/** A URL of a file in a folder, where an expression gives the file's name. */
const URL_IN_FOLDER = /\bnew URL\(\s*`([^`$]+)\/\$\{\w+\}`\s*,\s*import\.meta\.url\)/g
const LAUNCHED = /\blaunch\('([^']+)'/g

const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** This package is in another image: ops/pkcs11.Dockerfile. */
const ELSEWHERE = 'pkcs11js'

/** The packages and project files that a file names: those that it imports, forks or reads. */
function namedBy(path: string): { files: string[]; packages: string[] } {
  const text = read(path)
  const imports = importsOf(text)
  const paths = [...captures(text, URL_OF_FILE), ...captures(text, URL_IN_FOLDER)]
  const beside = [...imports.filter(name => name.startsWith('.')), ...paths]
  const files = beside.map(name => relative(root, resolve(root, dirname(path), name)))
  const launched = captures(text, LAUNCHED)
  return {
    files: [...files, ...launched].filter(file => file !== '' && existsSync(join(root, file))),
    packages: imports.filter(name => !/^(\.|node:)/.test(name)).map(packageOf),
  }
}

const captures = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(match => match[1] ?? '')

const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')

function reach(entry: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set([entry])
  const packages = new Set<string>()
  for (const file of files) {
    if (!/\.(ts|mjs)$/.test(file)) continue
    const named = namedBy(file)
    for (const next of named.files) files.add(next)
    for (const name of named.packages) packages.add(name)
  }
  return { files, packages }
}

/** What the last stage copies from the build's context. */
function copied(): string[] {
  const stage =
    read('Dockerfile')
      .split(/^FROM /m)
      .at(-1) ?? ''
  return captures(stage, /^COPY (?!--from)(.+) \S+$/gm).flatMap(sources => sources.split(' '))
}

/** Whether the build's context holds a path: the last line of .dockerignore that matches it decides. */
function isSent(path: string): boolean {
  const lines = read('.dockerignore').split('\n')
  const rules = lines.filter(line => line !== '' && !line.startsWith('#'))
  const last = rules.findLast(rule => rule === '*' || isWithin(path, rule.replace(/^!/, '')))
  return last === undefined || last.startsWith('!')
}

describe('the image', () => {
  const { files, packages } = reach(ENTRY)
  const isInside = (path: string) => isSent(path) && copied().some(source => isWithin(path, source))

  it('holds every file that the command imports, forks or reads', () => {
    expect(files.size).toBeGreaterThan(300)
    for (const file of ['cli/process/worker-process.ts', 'src/store/migrations', 'package.json'])
      expect([...files]).toContain(file)
    expect([...files].filter(file => !isInside(file))).toEqual([])
  })

  it('has every package that those files name', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
    expect(packages).toContain('bullmq')
    expect([...packages].filter(name => !(name in dependencies) && name !== ELSEWHERE)).toEqual([])
    const builds = captures(read('Dockerfile'), /^COPY (package\.json .*) \.\/$/gm)[0]?.split(' ') ?? []
    expect([...builds, 'package.json'].filter(file => !isSent(file))).toEqual([])
  })

  it('is made of nothing that is not there or not needed, and of no test', () => {
    expect(copied().filter(source => !existsSync(join(root, source)))).toEqual([])
    expect(copied().filter(source => ![...files].some(file => isWithin(file, source)))).toEqual([])
    expect(['test/run.ts', 'bench/main.ts', 'bin/demo.ts', 'node_modules/pg/package.json'].filter(isInside)).toEqual([])
  })
})
