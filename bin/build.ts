// `npm run build`: stages the package that others install in `build/server`, for `npm pack` there.
import { fileURLToPath } from 'node:url'
import { stage } from './build/stage.ts'

await stage(fileURLToPath(new URL('../build/server', import.meta.url)))
