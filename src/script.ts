// The script of a process that is forked. In the checkout it is TypeScript, in the installed package JavaScript: its
// extension is that of the file that names it.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The path of the script `name` (without extension, relative to the file of `url`). `url`: `import.meta.url`. */
export function scriptBeside(url: string, name: string): string {
  return fileURLToPath(new URL(`${name}${extname(url)}`, url))
}
