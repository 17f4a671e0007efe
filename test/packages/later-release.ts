// Makes a process of the checkout one of a release to come, which says more than this one does: its files are changed when
// they are loaded.

/** A file, what it says now, and what it will say. */
type Change = [string, string, string]

/** Each envelope has a member that workers may leave out of account; and the process says why its chunks go as rows. */
const ALWAYS: Change[] = [
  [
    'producers/envelope.ts',
    'const jws = sign(claims.value,',
    'const jws = sign({ ...claims.value, optional: { ...claims.value.optional, weight: 1 } },',
  ],
  [
    'producers/client/in-form.ts',
    'form.now = other\n',
    'form.now = other; console.error("as", other, JSON.stringify(result.error.details))\n',
  ],
]

const CHANGES = {
  'another column': [
    'src/job/record-columns.ts',
    'lines[0] = JSON.stringify(columns)',
    'lines[0] = JSON.stringify({ ...columns, weight: columns.line.map(() => 1) })',
  ],
  'another form': [
    'src/vault/capture/block.ts',
    "form === 'rows' ? {} : { form }",
    "form === 'rows' ? {} : { form: 'stripes' }",
  ],
} satisfies Record<string, Change>

export const LATER_RELEASES = Object.keys(CHANGES) as (keyof typeof CHANGES)[]

/** For `node --import`. */
export const laterRelease = (change: keyof typeof CHANGES): string =>
  `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  const changes = ${JSON.stringify([...ALWAYS, CHANGES[change]])}
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      const [name, now, later] = changes.find(([name]) => url.endsWith('/' + name)) ?? []
      if (!name) return loaded
      const source = String(loaded.source)
      if (!source.includes(now)) throw new Error(name + ' does not say ' + now)
      return { ...loaded, source: source.replace(now, () => later) }
    },
  })
`)}`
