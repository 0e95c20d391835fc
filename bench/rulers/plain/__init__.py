"""The plain way in Django REST framework: a ModelSerializer and a CreateAPIView."""
