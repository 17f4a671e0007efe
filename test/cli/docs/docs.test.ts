// The generated documents are up to date, and other pages agree with the code where that can be compared.
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { generated } from '../../../cli/docs/main.ts'
import { schemas } from '../../../cli/docs/schema.ts'
import { REASONS } from '../../../src/errors.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { lifecycle } from '../../producers/bundle.ts'
import { cli } from '../command-bench.ts'

const docs = new URL('../../../docs/', import.meta.url)
const read = (path: string) => {
  try {
    return readFileSync(new URL(path, docs), 'utf8')
  } catch {
    return undefined
  }
}

describe('the page of what makes the files of a host worthless', () => {
  const page = (read('keys.md') ?? '').split('## What each host has')[1]?.split('\n## ')[0] ?? ''
  const rows = page.split('\n').filter(line => line.startsWith('| ') && !line.startsWith('| --'))

  it.each(['gateway', 'workers', 'three-ds', 'scheduler', 'console'])('names what the host of %s has', role => {
    expect(rows.some(row => row.startsWith(`| ${role} `))).toBe(true)
  })

  const commands = new Set([...page.matchAll(/`tokenmill ([a-z-]+(?: [a-z-]+)*)/g)].map(([, words = '']) => words))
  it.each([...commands])('names a command that is there, with its options: %s', async words => {
    const all = words.split(' ')
    const options = all.filter(word => word.startsWith('--'))
    const { status, stdout } = await cli([...all.filter(word => !word.startsWith('--')), '--help'], { env: {} })
    expect(status).toBe(0)
    for (const option of options) expect(stdout).toContain(option)
  })
})

describe('docs', () => {
  it.each([...generated()])('%s is not stale (npm run docs writes it anew)', (path, text) => {
    expect(read(path)).toBe(text)
  })

  it('holds no schema that nothing generates', () => {
    const names = readdirSync(new URL('schema/', docs)).map(name => `schema/${name}`)
    expect(names.filter(name => !generated().has(name))).toEqual([])
  })

  it('has schemas that a validator takes, and that refuse an unknown key', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    const validators = Object.entries(schemas()).map(([name, schema]) => ({ name, validate: ajv.compile(schema) }))
    const validate = validators.find(({ name }) => name === 'token-lifecycle')?.validate
    expect(validate?.(lifecycle())).toBe(true)
    expect(validate?.({ ...lifecycle(), cvv: '123' })).toBe(false)
    for (const kind of CATALOGUE.kinds) expect(validators.some(({ name }) => name === kind)).toBe(true)
  })

  it('has an AsyncAPI document whose every reference leads somewhere', () => {
    const text = generated().get('asyncapi.json') ?? ''
    const document = JSON.parse(text) as Record<string, unknown>
    for (const [, ref = ''] of text.matchAll(/"\$ref": "([^"]+)"/g)) {
      if (ref.startsWith('./')) expect(generated().has(ref.slice(2)), ref).toBe(true)
      else {
        const found = ref
          .slice(2)
          .split('/')
          .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document)
        expect(found, ref).toBeDefined()
      }
    }
  })

  it('names every reason', () => {
    const page = generated().get('results.md') ?? ''
    for (const reason of Object.keys(REASONS)) expect(page).toContain(`| \`${reason}\` `)
  })
})
