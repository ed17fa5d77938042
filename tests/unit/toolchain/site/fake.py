# Stands for a package.
