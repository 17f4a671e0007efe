// Only src/store uses tokenmill's tables, and each table is written by one file. The test searches the SQL in the code.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TABLES } from '../../src/store/composition.ts'
import { MIGRATIONS as LISTED } from '../../src/store/schema.ts'
import { expectNone, isWithin, product, root, withoutComments } from './tree.ts'

const MIGRATIONS = join(root, 'src/store/migrations')
/** The queue uses BullMQ's schema, and src/embedded administers its server; neither may name a table of tokenmill. */
const OTHER_SQL = ['src/queue', 'src/embedded']

/** What 1.0.0 makes, by file: the first digits of SHA-256 of its statements, without comments and line ends. */
const BASELINE: Readonly<Record<string, string>> = {
  audit: '3ff2b3b8b8679dad',
  console: '9b5c30943cdc4e4d',
  core: '10ba3304f9c1252a',
  keys: '53afbc3f32e6028a',
  ledger: 'b4a33ee0928d8cca',
  networks: 'ef61fc8c37d9df95',
  operate: '33b4433fb1a5fc70',
  reports: 'fa07d69f3844a5f2',
  'sign-off': 'beca44f3b991fb4a',
  'three-ds': 'ee619ea19d30420a',
}

const STATEMENT =
  /['"`]\s*(select\b|insert\s+into\b|update\s+\w+(\.\w+)?\s+(as\s+\w+\s+)?set\b|delete\s+from\b|truncate\b|with\s+\w+\s+as\b)/i
/** A name that is followed by a dash isn't a table. */
const OURS = /\btokenmill\.[a-z_]+(?![\w-])/
const WRITE =
  /\b(?:insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|truncate(?:\s+table)?|merge\s+into)\s+(?:tokenmill\.)?([a-z_]+)/gi

/** A statement that writes a table whose name is composed, which other tests can't find. */
const COMPOSED_WRITE =
  /\b(?:insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|truncate(?:\s+table)?)\s+(?:tokenmill\.)?\$\{/i

/** The type of a row in the spelling of its columns, which the code outside the statement never sees. */
const ROW_OF_COLUMNS =
  /\b[a-z]+_[a-z_]+\??:\s*(?:readonly\s+)?(?:string|number|boolean|bigint|Buffer|Date|unknown|null)\b/

function migrationText(): string {
  return readdirSync(MIGRATIONS, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.sql'))
    .map(name => readFileSync(join(MIGRATIONS, name), 'utf8'))
    .join('\n')
}

/** Every table that the migrations make and leave. */
function tables(): Set<string> {
  return new Set(
    [...migrationText().matchAll(/create\s+table\s+(?:if\s+not\s+exists\s+)?tokenmill\.([a-z_]+)/gi)].map(
      m => m[1] ?? '',
    ),
  )
}

function writtenBy(text: string): string[] {
  return [...new Set([...withoutComments(text).matchAll(WRITE)].map(match => (match[1] ?? '').toLowerCase()))]
}

const CLAUSE =
  /(?<![\w."$])(select|from|where|group by|order by|having|limit|returning|values|set|on conflict|(?:(?:left|inner|cross|full|right) )?join|union(?: all)?|insert into|update|delete from|for update|for share)\b/gi
/** Words that are a clause of their own elsewhere: `is distinct from`, `do update`. */
const NO_CLAUSE = /\b(distinct from|do update|set local|on update)\b/gi

/** A line of SQL without what stands in parentheses that it opens and closes. */
function flatOf(line: string): string {
  let flat = line
  for (let last = ''; last !== flat; ) {
    last = flat
    flat = flat.replace(/\([^()]*\)/g, '')
  }
  return flat
}

/** The lines of statements with more than one clause, or with more than three members of a list. */
function squeezedIn(text: string): string[] {
  const statements = [...text.matchAll(/`((?:[^`\\]|\\.)*)`|'((?:[^'\\\n]|\\.)*)'/g)]
    .map(([, template, quoted]) => template ?? quoted ?? '')
    .filter(sql =>
      /^\s*(with|select|insert into|update|delete from)\b[\s\S]*\b(from|set|values|where|into)\b/i.test(sql),
    )
  return statements.flatMap(sql =>
    sql.split('\n').filter(line => {
      const flat = flatOf(line.replace(/'[^']*'|\$\{[^}]*\}/g, '?')).replace(NO_CLAUSE, '')
      const clauses = [...flat.matchAll(CLAUSE)]
      return (
        clauses.length > 1 ||
        (/^\s*(select|returning|set|group by|order by)\b/i.test(flat) && flat.split(',').length > 3)
      )
    }),
  )
}

describe('SQL', () => {
  it('on our schema stands in the store alone', () => {
    expectNone(
      product.filter(({ path }) => !isWithin(path, 'src/store')),
      ({ path, text }) => {
        const bare = withoutComments(text)
        const found = OTHER_SQL.some(room => isWithin(path, room))
          ? OURS.exec(bare)
          : (STATEMENT.exec(bare) ?? OURS.exec(bare))
        return found ? [found[0].trim()] : []
      },
    )
  })

  it('has a clause a line, and a list of more than three a member a line', () => {
    expectNone(
      product.filter(({ path }) => isWithin(path, 'src/store')),
      ({ text }) => squeezedIn(text),
    )
  })

  // test/fixtures/installation.ts replaces the functions, and can't replace keywords.
  it('reads the clock by functions, not by keywords', () => {
    const keyword = /\b(current_(date|time|timestamp)|localtime(stamp)?)\b/gi
    expect(migrationText().match(keyword)).toBeNull()
    expectNone(
      product.filter(({ path }) => isWithin(path, 'src/store')),
      ({ text }) => withoutComments(text).match(keyword) ?? [],
    )
  })

  it('that writes a table stands in one file for each table', () => {
    const known = tables()
    expect(known.size).toBeGreaterThan(30)
    const writers = new Map<string, string[]>()
    for (const { path, text } of product)
      for (const table of writtenBy(text))
        if (known.has(table)) writers.set(table, [...(writers.get(table) ?? []), path])
    expect([...writers].filter(([, files]) => files.length > 1)).toEqual([])
  })

  it('names the table that it writes, but where sealed bytes of any column are sealed anew', () => {
    const composing = product.filter(({ text }) => COMPOSED_WRITE.test(withoutComments(text)))
    expect(composing.map(({ path }) => path)).toEqual(['src/store/reseal/sealed-rows.ts'])
  })

  it('names what it selects as the code does: no row has a second type in the spelling of its columns', () => {
    for (const row of ['interface Row {\n  token_id: string\n}', 'query<{ n: number; seen_at: Date | null }>'])
      expect(row).toMatch(ROW_OF_COLUMNS)
    expect('query<{ seenAt: Date }>({ text: `select seen_at as "seenAt"` })').not.toMatch(ROW_OF_COLUMNS)
    expectNone(
      product.filter(({ path }) => isWithin(path, 'src/store')),
      ({ text }) => withoutComments(text).match(ROW_OF_COLUMNS) ?? [],
    )
  })

  it('is seen to write in every form that the store uses', () => {
    const text = [
      'insert into tokenmill.token (a) values ($1)',
      'update tokenmill.receipt as r set a = 1',
      'delete from tokenmill.guess where a',
      'select a from tokenmill.scope for update',
      '// update tokenmill.batch set',
    ].join('\n')
    expect(writtenBy(text)).toEqual(['token', 'receipt', 'guess'])
  })
})

it('workers and producers read a scope where its code is checked', () => {
  const checks = ['workers/directory.ts', 'workers/process/live-keys.ts', 'producers/gateway/directory.ts']
  expectNone(
    product.filter(({ path }) => /^(workers|producers)\//.test(path) && !checks.includes(path)),
    ({ text }) => text.match(/^import (?!type).*access\/scopes\.ts'/gm) ?? [],
  )
})

describe('a migration', () => {
  it('comes behind those of 1.0.0, which stay as they are: there are databases made by them', () => {
    const folder = join(MIGRATIONS, '0001-baseline')
    const files = readdirSync(folder).filter(name => name.endsWith('.sql'))
    expect(files).not.toEqual([])
    for (const name of files) {
      const statements = readFileSync(join(folder, name), 'utf8').replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim()
      const digest = createHash('sha256').update(statements).digest('hex').slice(0, 16)
      expect([name, digest]).toEqual([name, BASELINE[name.replace('.sql', '')]])
    }
  })

  it('is in the list of those that are run, in the order of its number', () => {
    expect(LISTED).toEqual(readdirSync(MIGRATIONS).sort())
  })

  it('is made of files that are run, and of the classes of their columns', () => {
    const files = TABLES.flatMap(({ sql }) => [`${sql}.sql`, `${sql}.json`])
    for (const name of LISTED)
      expect(readdirSync(join(MIGRATIONS, name)).filter(file => !files.includes(file))).toEqual([])
  })
})
